// looks are not compared
